"""From rows to exact counts. Private."""
