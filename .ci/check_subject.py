"""Check the subject of a commit: at most 72 characters, `room: verb object`; others end with 1."""

import re
import sys
from pathlib import Path

LONGEST = 72
SUBJECT = re.compile(r"[a-z][\w/.-]*(, [a-z][\w/.-]*)*: \S.*[^.\s]")
# Written by git itself.
MADE_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ")


def subject_fault(subject: str) -> str | None:
    """Say what is wrong with a subject; None if nothing is."""
    if subject.startswith(MADE_BY_GIT):
        return None
    if len(subject) > LONGEST:
        return f"the subject must have at most {LONGEST} characters, got {len(subject)}"
    if not SUBJECT.fullmatch(subject):
        return "the subject must read `room: verb object`, as `query: answer windows of slices`"
    return None


if __name__ == "__main__":
    fault = subject_fault(Path(sys.argv[1]).read_text("utf-8").partition("\n")[0])
    if fault:
        sys.exit(fault)
