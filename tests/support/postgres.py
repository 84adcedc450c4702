"""A throw-away PostgreSQL with PostGIS: own folder, own socket, no TCP, gone with the session."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

import pytest

NEEDED = "apt-get install postgresql postgresql-postgis, and pip install adbc-driver-postgresql"


def programs():
    """Folder of initdb and pg_ctl, as Debian installs them; None without PostGIS."""
    extension = Path("/usr/share/postgresql").glob("*/extension/postgis.control")
    versions = sorted(path.parts[-3] for path in extension)
    folders = [Path("/usr/lib/postgresql", version, "bin") for version in versions]
    return next((folder for folder in reversed(folders) if (folder / "initdb").exists()), None)


def has_driver():
    """Whether the driver can be imported."""
    try:
        import adbc_driver_postgresql.dbapi  # noqa: F401
    except ImportError:
        return False
    return True


def required():
    """Skip where nothing is installed, with the reason; where it has to be installed, fail."""
    if programs() and has_driver():
        return
    if os.environ.get("CI") or os.environ.get("PSD_REQUIRE_POSTGRES"):
        pytest.fail(f"PostgreSQL has to be here: {NEEDED}")
    pytest.skip(f"no PostgreSQL: {NEEDED}")


def unprivileged(*command):
    """Run as a user whom PostgreSQL accepts; root is none."""
    prefix = ()
    if os.geteuid() == 0:
        prefix = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")
    subprocess.run([*prefix, *map(str, command)], check=True, stdout=subprocess.DEVNULL, cwd="/")


@contextlib.contextmanager
def server():
    """Address of a running server, for its superuser psd; a user locked needs a password."""
    required()
    folder = Path(tempfile.mkdtemp(prefix="psdpg"))  # short: names of sockets have 107 bytes
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    settings = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    control = (programs() / "pg_ctl", "-w", "-t", "900", "-D", folder / "data")
    try:
        initdb = ("-U", "psd", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        unprivileged(programs() / "initdb", "-D", folder / "data", *initdb)
        rules = folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all locked scram-sha-256\n{rules.read_text()}")
        unprivileged(*control, "-l", folder / "log", "-o", settings, "start")
        try:
            yield f"postgresql://psd@/postgres?host={quote(str(folder), safe='')}"
        finally:
            unprivileged(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def execute(url, *statements):
    """Run statements, committed together."""
    from adbc_driver_postgresql import dbapi

    with contextlib.closing(dbapi.connect(url)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def ingest(url, name, table):
    """Write an Arrow table."""
    from adbc_driver_postgresql import dbapi

    with contextlib.closing(dbapi.connect(url)) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest(name, table, mode="create")
        connection.commit()


def rows(url, query):
    """All rows of a query."""
    from adbc_driver_postgresql import dbapi

    with contextlib.closing(dbapi.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()
