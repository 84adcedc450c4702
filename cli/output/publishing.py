"""Carry out a recipe: read, charge, build, save, sign, export, and show what is private."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.file_endings import check_release_name

from ..options.common import local_files, write_build_tally
from ..options.fields import account_of
from .terminal import Stage, is_quiet, print_success, show_stage

if TYPE_CHECKING:
    from psd.ingest.engine import Engine
    from psd.ingest.partial_tally import PartialTally
    from psd.ingest.tally import Tally
    from psd.privacy.loss import Loss
    from psd.publish.observer import Observer
    from psd.publish.recipe import PlannedRelease, PrivateInputs, Recipe
    from psd.publish.request import BuildRequest, BuildTerms

__all__ = ["make_observer"]


_MARK = "PRIVATE, do not publish:"

_NOTHING_INSIDE = (
    "no record was counted; are x and y swapped, are the bounds in the order west south east "
    "north, is the CRS right, and do the slices hold the times?"
)


def make_observer(
    progress: Stage | Callable[[str], None],
    *,
    report_private: bool,
    private_tally: Callable[[Tally], None] | None = None,
) -> Observer:
    """Observer of a command: private numbers and faults are shown if the options ask for them."""
    from psd.publish.observer import Observer

    return Observer(
        progress=progress,
        slices_done=progress.slices if isinstance(progress, Stage) else lambda done, total: None,
        private_report=_show_report if report_private else lambda report: None,
        private_fault=_show_fault if report_private else lambda fault: None,
        private_tally=private_tally,
    )


def _show_report(report: dict[str, int]) -> None:
    """Numbers of records."""
    parts = ", ".join(f"{name} {number:,}" for name, number in report.items())
    click.echo(f"{_MARK} records {parts}", err=True)
    if report.get("read") and not report.get("kept"):
        click.echo(f"{_MARK} {_NOTHING_INSIDE}", err=True)


def _show_fault(fault: str) -> None:
    """Why an input could not be read."""
    click.echo(f"{_MARK} {' '.join(fault.split())}", err=True)


def show_requests(recipe: Recipe) -> None:
    """Print requests as TOML; no ledger or key is opened, input only with --report-private."""
    from psd._util.json_toml import toml_text
    from psd._util.wall_clock import check_zone
    from psd.errors import ParameterError
    from psd.publish.request_warnings import warn_of_request
    from psd.publish.tallies import tally_files
    from psd.space.domain import Domain, place_text

    if recipe.private.report_private and tally_files(recipe.private.inputs) is not None:
        raise ParameterError(
            "report_private must be left out of a dry run of tallies, whose records were read "
            "before"
        )
    tables = []
    for release in recipe.releases:
        check_release_name(release.output)
        terms = release.terms()
        _check_exports(release, terms)
        check_zone(terms.columns.time_zone)
        warn_of_request(terms)
        if terms.domain is None:
            click.echo(
                f"# epsilon {terms.epsilon:f}; bounds, unit and slices are those of the tallies"
            )
        else:
            click.echo(f"# {terms.guarantee_text}")
        if isinstance(terms.domain, Domain) and (place := place_text(terms.domain)):
            click.echo(f"# place of the bounds: {place}")
        tables.append(release.to_table(terms))
    click.echo(toml_text({"release": tables[0] if len(tables) == 1 else tables}), nl=False)
    if recipe.private.report_private:
        _report_readings(recipe)


def _report_readings(recipe: Recipe) -> None:
    """Report what each release of a recipe would read; draws and writes nothing."""
    from psd.publish.pipeline import report_reading

    private = recipe.private
    data, engine = _open_inputs(private)
    _check_public_files(recipe, engine)
    for release in recipe.releases:
        if len(recipe.releases) > 1:
            click.echo(f"{release.output}:", err=True)
        with show_stage() as stage:
            report_reading(
                release.terms(),
                data,
                engine=engine,
                memory=private.memory,
                withholds=private.ledger is not None,
                observer=make_observer(stage, report_private=True),
            )


def _open_inputs(private: PrivateInputs) -> tuple[Any, Engine | None]:
    """Inputs and engine of a recipe, which must name some."""
    from psd.publish.counting import inputs_and_engine

    if not private.inputs and (private.table is None or private.engine is None):
        raise click.MissingParameter(param_hint="'INPUTS...'", param_type="argument")
    return inputs_and_engine(private.inputs, private.table, private.query, private.engine)


def _check_public_files(recipe: Recipe, engine: Engine | None) -> list[Path]:
    """Refuse public files that hold records; local paths of the inputs."""
    from psd.publish.fields import public_files
    from psd.regions.files import refuse_record_files

    inputs = recipe.private.inputs
    local = local_files(inputs) if engine is None else local_paths(inputs)
    for release in recipe.releases:
        refuse_record_files(public_files(release.table, release.folder), local)
    return local


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
    from psd.errors import ParameterError, WriteError
    from psd.privacy.values import noise_sentence
    from psd.publish.counting import count_input
    from psd.publish.drawing import draw_counts
    from psd.publish.fields import public_files
    from psd.publish.pipeline import run_build
    from psd.publish.request_warnings import warn_of_columns, warn_of_request
    from psd.publish.tallies import tallies_in
    from psd.signing import check_key, sign, signature_name

    private, releases = recipe.private, recipe.releases
    data, engine = _open_inputs(private)
    local = _check_public_files(recipe, engine)
    public = [file for r in releases for file in public_files(r.table, r.folder)]
    keys = filter(None, [private.ledger, private.sign_key])
    read: list[str | Path] = [*local, *public, *keys]
    targets = [file for release in releases for file in (release.output, *release.export)]
    if private.sign_key is not None:  # what cannot be signed is not drawn, since noise is paid for
        check_key(private.sign_key)
        targets += [str(signature_name(release.output)) for release in releases]
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
    if private.keep_tally is not None and any(each.category for each in requests):
        raise ParameterError(
            "keep_tally must be left out with category, since tallies have no categories",
            name="keep_tally",
        )
    if account is not None and len(requests) > 1 and tallies is None:
        # All can be paid, or none is built.
        source = count_input(data, engine=engine, memory=private.memory)
        account.check_all([source.charge_request(request) for request in requests])
    for release, request in zip(releases, requests, strict=True):
        warn_of_request(request)
        if tallies is None and engine is None:
            per = release.table.get("per")
            warn_of_columns(data, request, per=per, has_ledger=account is not None)

    for number, (release, request) in enumerate(zip(releases, requests, strict=True), start=1):
        counted: list[Tally] = []
        of_all = f"release {number} of {len(releases)}: " if len(releases) > 1 else ""
        with show_stage(of_all) as stage:
            observer = make_observer(
                stage,
                report_private=private.report_private,
                private_tally=counted.append if private.keep_tally else None,
            )
            built = run_build(
                request,
                data if tallies is None else tallies,
                partial(draw_counts, on_slice=observer.slices_done),
                engine=engine,
                memory=private.memory,
                account=account,
                observer=observer,
            )
            stage("writing")
            try:
                built.save(release.output, overwrite=overwrite)
            except WriteError as error:
                if account is None:
                    raise
                raise WriteError(f"{error}; its charge stays", path=error.path) from None
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
        what = built.method
        if request.slices is not None:
            slices = len(built.slices or ())
            what += f", {slices} slice{'s' * (slices != 1)}"
            if tallies is None and "time_zone" not in release.table:
                what += " in UTC (no time zone is given)"
        if request.category is not None:
            what += f", {request.category.size:,} categories of {request.category.column}"
        print_success(f"wrote {release.output}: {what}, {built.record.guarantee_text}")
        if request.noise_text is not None:
            print_success(request.noise_text)
        if values := len(built.record.values):
            print_success(noise_sentence(values, is_pure=request.law == "laplace"))
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
    if tallies is None and not is_quiet():  # the records of tallies were read before
        # How their holder sees what was read: the same words whatever was read.
        in_recipe = releases[0].folder is not None
        how = "with report_private = true" if in_recipe else "--report-private"
        click.echo(
            "(to see, as the holder of the data, how many records were left out, build with "
            f"--dry-run {how}; those numbers are PRIVATE and must choose no parameter)",
            err=True,
        )


def local_paths(inputs: Sequence[str]) -> list[Path]:
    """Paths of an engine that may be local."""
    names = (item.removeprefix("file://") for item in inputs)
    return [Path(name) for name in names if "://" not in name]


def _complete_request(release: PlannedRelease, tallies: PartialTally | None) -> BuildRequest:
    """Request of a release, completed with the statements of the tallies."""
    from psd.publish.counting import count_input

    if tallies is None:
        request = release.terms().of_records()
    else:
        request = count_input(tallies).complete(release.terms(tallies.rules.domain))
    _check_exports(release, request)
    return request


def _check_exports(release: PlannedRelease, terms: BuildTerms) -> None:
    """Refuse exports that the release cannot be written to."""
    if not release.export:  # formats would load what answers queries
        return
    from psd.errors import ParameterError
    from psd.export import find_format

    if terms.slices is not None:
        raise ParameterError("export must be left out with slices; export a slice of the series")
    for path in release.export:
        find_format(path)
