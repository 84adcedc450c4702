"""`Release`: a record with methods for queries, statistics and exports. Public."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from numpy.typing import ArrayLike

from psd._util.file_endings import check_release_name
from psd._util.instances import check_instance
from psd.api._release_answers import ReleaseAnswers
from psd.api._release_outputs import ReleaseOutputs
from psd.errors import ParameterError
from psd.privacy.unit import PrivacyUnit
from psd.release.about import about_from_mapping
from psd.release.counts import record_from_counts
from psd.release.file import read_release, write_release
from psd.release.node_limit import MAX_NODES
from psd.release.post_processing import PostProcessing
from psd.space.box_tree import Tree
from psd.space.domain import Domain, public_domain
from psd.space.region_tree import RegionTree

__all__ = ["Release"]


class Release(ReleaseOutputs, ReleaseAnswers):
    """A differentially private release, ready to be saved, queried and exported.

    Guarantees
    ----------
    - It holds the answers of the curator, public parameters, and nothing else.
    - Every method is post-processing: it reads the release alone and costs no epsilon.

    Parameters
    ----------
    record : ReleaseRecord
        The published fields.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.grid_tree(domain, 2)
    >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
    >>> release.query([(0, 0, 2, 1)])["estimate"].round(1).tolist()
    [6.0]
    """

    def with_post_processing(self, post_processing: PostProcessing) -> Release:
        """Make the same release with another post-processing; costs no epsilon."""
        return type(self)(replace(self.record, post_processing=post_processing))

    def with_about(self, about: Mapping[str, str] | None) -> Self:
        """Make the same release with other statements of the publisher; costs no epsilon.

        Parameters
        ----------
        about : mapping of texts, optional
            As in `psd.build`; all statements, or None for none. They are part of the content, so
            the digest is another one.

        Raises
        ------
        ParameterError
            If a key does not exist, or a text is not valid.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
        >>> tree = psd.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
        >>> release.with_about({"title": "Visits", "licence": "CC-BY-4.0"}).about["title"]
        'Visits'
        """
        return type(self)(replace(self.record, about=about_from_mapping(about)))

    @classmethod
    def from_counts(
        cls,
        tree: Tree,
        counts: ArrayLike,
        epsilons: ArrayLike | str | float,
        *,
        domain: Domain,
        unit: PrivacyUnit | None = None,
    ) -> Release:
        """Make a release of given noisy counts, such as those of another program.

        The guarantee of this library covers releases of its curator alone. This one, its file,
        and what is printed or exported from it state that the counts were given.

        Parameters
        ----------
        tree : Tree
            Cells; its own counts are replaced.
        counts : array_like of int, shape (leaves,), (nodes,) or (rows, columns)
            Noisy counts of the leaves in the order of the tree, of every node, or of a grid, its
            rows from the south and its columns from the west.
        epsilons : decimal, or array_like of decimals of the same shape
            Epsilon of each count; 0 where a node is not measured.
        domain : Domain
            Domain of the tree.
        unit : PrivacyUnit, optional
            Unit of privacy of the given counts; a record by default.

        Raises
        ------
        ParameterError
            If the shapes do not fit.
        """
        unit = PrivacyUnit() if unit is None else unit
        check_instance("tree", tree, Tree, "psd.grid_tree(domain, 8)")
        check_instance("unit", unit, PrivacyUnit, 'psd.PrivacyUnit(kind="user")')
        domain = public_domain(domain)
        return cls(record_from_counts(tree, counts, epsilons, domain=domain, unit=unit))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release file; a failure leaves no partial file.

        Raises
        ------
        ParameterError
            If the counts come from replayed answers or a seed, a value is not declared public, see
            `psd.release.allow_list`, or the name has the ending of another format.
        WriteError
            If the file exists or cannot be written.
        """
        check_release_name(path, "path")
        write_release(self.record, path, overwrite=overwrite)
        if self.note_saved is not None:
            self.note_saved(path)

    @staticmethod
    def load(path: str | os.PathLike[str], *, max_nodes: int = MAX_NODES) -> Release:
        """Read a release file.

        Parameters
        ----------
        path : path-like
            File to read.
        max_nodes : int
            Largest number of nodes in the file. Memory and time of queries grow with it, so raise
            it only for files from trusted senders.

        Raises
        ------
        ReleaseFormatError
            If the file is missing, malformed, damaged or of an unknown version, or states more
            nodes.
        ParameterError
            If `max_nodes` is not a positive integer, or the release has regions, which `psd.load`
            reads.
        """
        record, digest = read_release(path, max_nodes=max_nodes)
        if isinstance(record.tree, RegionTree):
            raise ParameterError("path must have no regions; use psd.load", name="path")
        release = Release(record)
        vars(release)["digest"] = digest
        return release
