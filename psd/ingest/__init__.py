"""From records to exact counts. Private."""
