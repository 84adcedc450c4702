"""The record of a release, its file, digest and signature. Public."""
