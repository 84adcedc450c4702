"""Names of databases, tables and columns, as messages and SQL have them."""

from psd._util.postgres import display_name, quote_identifier, quote_table


def test_a_database_is_named_without_its_user_and_password():
    url = "postgresql://ann:secret@db.example.org/city?sslmode=require"
    assert display_name(url) == "database city on db.example.org"


def test_names_are_quoted_part_by_part():
    assert quote_identifier("visits of 2024") == '"visits of 2024"'
    assert quote_table("public.visits") == '"public"."visits"'
