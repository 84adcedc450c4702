"""What is published: the record, its file, digest and signature. Public."""
