"""Edits of a ledger by a person who may write its file and knows the format."""

import json
import sqlite3
from contextlib import closing

from psd.ledger import entries


def run_sql(path, script):
    """Run statements on the file of a database."""
    with closing(sqlite3.connect(path)) as file:
        file.executescript(script)


def edit_charge(ledger, number, **changes):
    """Change fields of an entry, and compute the chain anew, so that every hash is right."""
    with closing(sqlite3.connect(ledger.path)) as file:
        triggers = file.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        file.executescript("DROP TRIGGER kept; DROP TRIGGER held")
        before = ""
        for at, time, kind, body in file.execute(
            "SELECT number, time, kind, body FROM entry ORDER BY number"
        ).fetchall():
            if at == number:
                fields = {**json.loads(body), **changes}
                body = json.dumps(fields, sort_keys=True, separators=(",", ":"))
            before = entries._hash(before, at, time, kind, body)
            file.execute("UPDATE entry SET body = ?, hash = ? WHERE number = ?", (body, before, at))
        for (sql,) in triggers:
            file.execute(sql)
        file.commit()


def cut_off(ledger, number):
    """Remove an entry and all after it."""
    with closing(sqlite3.connect(ledger.path)) as file:
        triggers = file.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        file.executescript("DROP TRIGGER kept; DROP TRIGGER held")
        file.execute("DELETE FROM entry WHERE number >= ?", (number,))
        for (sql,) in triggers:
            file.execute(sql)
        file.commit()
