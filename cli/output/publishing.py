"""Carry out a recipe: read, charge, build, save, sign and export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from psd._util.file_endings import check_release_name

from ..options.fields import account_of
from ..options.tallies import local_files, tallies_in, write_build_tally
from ..output.request_warnings import make_observer, warn_of_ids, warn_of_request
from ..output.terminal import print_success, show_stage

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.ingest.partial_tally import PartialTally
    from psd.ingest.tally import Tally
    from psd.privacy.loss import Loss
    from psd.publish.recipe import PlannedRelease, Recipe
    from psd.publish.request import BuildRequest

__all__ = ["print_requests", "run_recipe", "save_recipe"]


def print_requests(recipe: Recipe) -> None:
    """Print the requests of a recipe as TOML; opens no input, no ledger and no key."""
    from psd._util.toml_text import toml_text

    tables = []
    for release in recipe.releases:
        check_release_name(release.output)
        terms = release.terms()
        warn_of_request(terms)
        if terms.domain is None:
            click.echo(
                f"# epsilon {terms.epsilon:f}; bounds, unit and slices are those of the tallies"
            )
        else:
            click.echo(f"# {terms.guarantee_text}")
        tables.append(release.to_table(terms))
    click.echo(toml_text({"release": tables[0] if len(tables) == 1 else tables}), nl=False)


def save_recipe(recipe: Recipe, path: str, *, overwrite: bool) -> None:
    """Write a recipe; only its owner may read it, because it names the inputs."""
    from psd._util.atomic_write import check_free, write_file

    check_free(path, overwrite=overwrite)
    text = recipe.to_toml(folder=Path(path).parent)
    write_file(path, text.encode(), overwrite=overwrite, mode=0o600)
    print_success(f"wrote {path} (PRIVATE)")


def run_recipe(recipe: Recipe, *, overwrite: bool) -> None:
    """Build, save, sign and export the releases of a recipe, after a check of all of them."""
    from psd._util.atomic_write import check_targets
    from psd.publish.drawing import draw_counts
    from psd.publish.fields import public_files
    from psd.publish.inputs import inputs_and_engine
    from psd.publish.pipeline import run_build
    from psd.publish.recipe import PER_RECORD
    from psd.regions.inputs import refuse_record_files
    from psd.release.signing import sign

    private, releases = recipe.private, recipe.releases
    if not private.inputs and (private.table is None or private.engine is None):
        raise click.MissingParameter(param_hint="'INPUTS...'", param_type="argument")
    data, engine = inputs_and_engine(private.inputs, private.table, private.query, private.engine)
    local = local_files(private.inputs) if engine is None else local_paths(private.inputs)
    public = [file for r in releases for file in public_files(r.table, r.folder)]
    if public:
        refuse_record_files(public, local)
    keys = filter(None, [private.ledger, private.sign_key])
    read: list[str | Path] = [*local, *public, *keys]
    targets = [file for release in releases for file in (release.output, *release.export)]
    check_targets(filter(None, (*targets, private.keep_tally)), overwrite=overwrite, inputs=read)
    for release in releases:
        check_release_name(release.output)
    outputs = [release.output for release in releases]
    account = account_of(private.ledger, private.dataset, private.analyst, outputs)
    if account is not None:
        account.refuse_records(public)
    observer = make_observer(lambda stage: None, report_private=private.report_private)

    def losses_of(tally: PartialTally) -> list[Loss]:
        """Losses of all releases of a tally."""
        return [_complete_request(release, tally).loss for release in releases]

    tallies = tallies_in(private.inputs, account, losses_of, observer)
    requests = [_complete_request(release, tallies) for release in releases]
    for request in requests:
        warn_of_request(request)
    if account is None and tallies is None and engine is None:
        # Warn once of ids, if a release is per record and does not say that it is meant. With a
        # ledger the dataset states the unit.
        for release, request in zip(releases, requests, strict=True):
            if not (request.unit.has_user or release.table.get("per") == PER_RECORD):
                warn_of_ids(data, request.columns)
                break

    for release, request in zip(releases, requests, strict=True):
        counted: list[Tally] = []
        with show_stage() as stage:
            built = run_build(
                request,
                data if tallies is None else tallies,
                draw_counts,
                engine=engine,
                memory=private.memory,
                account=account,
                observer=make_observer(
                    stage,
                    report_private=private.report_private,
                    private_tally=counted.append if private.keep_tally else None,
                ),
            )
            stage("writing")
            built.save(release.output, overwrite=overwrite)
            if account is not None:
                account.finish(release.output)
            if private.keep_tally is not None:
                write_build_tally(
                    private.keep_tally,
                    counted[0] if tallies is None else tallies,
                    built,
                    release.output,
                    data if engine is None else (),  # paths of a cluster have no digest here
                    request.columns,
                    overwrite=overwrite,
                )
        what = built.method if request.slices is None else _series_text(built)
        print_success(f"wrote {release.output}: {what}, {built.guarantee_text}")
        if request.noise_text is not None:
            print_success(request.noise_text)
        if account is not None:
            print_success(f"ledger head {account.head}")
        if private.keep_tally:
            print_success(f"wrote {private.keep_tally} (PRIVATE)")
        if private.sign_key is not None:
            signature = sign(release.output, private.sign_key, overwrite=overwrite)
            print_success(f"wrote {signature}")
        for path in release.export:
            built.export(path, overwrite=overwrite)
            print_success(f"wrote {path}")


def local_paths(inputs: Sequence[str]) -> list[Path]:
    """Paths of an engine that may be local."""
    names = (item.removeprefix("file://") for item in inputs)
    return [Path(name) for name in names if "://" not in name]


def _complete_request(release: PlannedRelease, tallies: PartialTally | None) -> BuildRequest:
    """Request of a release, completed with the statements of the tallies."""
    from psd.errors import ParameterError
    from psd.publish.counting import count_input

    if tallies is None:
        request = release.terms().of_records()
    else:
        request = count_input(tallies).complete(release.terms(tallies.rules.domain))
    if request.slices is not None and release.export:
        raise ParameterError("export must be left out with slices; export a slice of the series")
    return request


def _series_text(series: Release) -> str:
    """Method, and the number of slices."""
    number = len(series.slices or ())
    return f"{series.method}, {number} slice{'s' * (number != 1)}"
