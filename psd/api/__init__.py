"""What users hold: releases and series, whose verbs delegate to the rooms below. Public."""
