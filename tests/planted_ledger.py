"""Planted bugs of the ledger, each to be caught by a test that sound code passes."""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import time
from hashlib import blake2b

from planted import replaced

import psd.ledger
import psd.publish
from psd.book import Book
from psd.epsilon import NANO
from psd.errors import BudgetError
from psd.journal import entry, read_book
from psd.ledger import Ledger
from psd.ledger_file import appended, rows, writing
from psd.spending import Account, Spending


def check_then_act():
    """The balance is looked at in one transaction, and the charge written in another."""

    def charge(self, name, claim, *, analyst=None):
        self.check(name, claim, analyst=analyst)
        time.sleep(0.005)
        body = {"id": secrets.token_hex(16), "dataset": name, "analyst": analyst}
        with writing(self.path) as ledger:
            book = read_book(rows(ledger))
            appended(ledger, entry(book.hashes, "charge", body | psd.ledger._body(claim)))
        return body["id"]

    return replaced(Ledger, "charge", charge)


def refund_on_failure(path):
    """A build that fails gets its charge back, though somebody has seen a draw."""
    original = psd.publish.release_of

    def release_of(*arguments, **options):
        try:
            return original(*arguments, **options)
        except BaseException:
            with contextlib.closing(sqlite3.connect(path)) as ledger:
                ledger.executescript("DROP TRIGGER held; DELETE FROM entry WHERE kind = 'charge'")
            raise

    return replaced(psd.publish, "release_of", release_of)


def float_epsilon():
    """Balances are floating-point sums."""

    def check(self, name, claim, analyst):
        spent = sum(charge.epsilon / NANO for charge in self.charges_of(name))
        if spent + claim.epsilon / NANO > self.datasets[name].budget / NANO:
            raise BudgetError("too much")

    return replaced(Book, "check", check)


@contextlib.contextmanager
def chain_over_a_fingerprint():
    """What is charged says which rows it was charged for."""
    count, body, seen = psd.publish.count_rows, psd.ledger._body, []

    def count_rows(*arguments, **options):
        counted = count(*arguments, **options)
        seen.append(blake2b(counted.tally.counts.tobytes()).hexdigest())
        return counted

    def with_fingerprint(claim):
        return {**body(claim), "what": f"{claim.what} of {seen[-1]}"}

    with (
        replaced(psd.publish, "count_rows", count_rows),
        replaced(psd.ledger, "_body", with_fingerprint),
    ):
        yield


def done_before_write():
    """A release is noted as given out when it is paid."""
    original = Account.charge

    def charge(self, claim):
        original(self, claim)
        self.ledger.finish(self.last)

    return replaced(Account, "charge", charge)


@contextlib.contextmanager
def draw_before_commit():
    """The charge is written when the release is."""
    finish, charge = Account.finish, Spending.charge

    def late(self):
        self._account.later = self

    def at_last(self, path=None):
        charge(self.later)
        finish(self, path)

    with replaced(Spending, "charge", late), replaced(Account, "finish", at_last):
        yield


def choice_before_commit():
    """The charge is written after reading, and something was drawn while reading."""
    return replaced(Spending, "before", lambda self, noise: noise)


def touching_regions_are_apart():
    """Regions that share an edge are taken to have no row in common."""

    def deepest(charges, within):
        boxes = {(w, s, e - 1e-9, n - 1e-9): nano for (w, s, e, n), nano in charges.items()}
        return original(boxes, within)

    original = psd.composition._deepest
    return replaced(psd.composition, "_deepest", deepest)


def regions_for_users():
    """Users are taken to have all their rows in one region."""

    def spent(self, name, region=None, analyst=None):
        charges = self.charges_of(name, analyst)
        return psd.composition.spent_within([(c.region, c.epsilon) for c in charges], region)

    return replaced(Book, "spent", spent)
