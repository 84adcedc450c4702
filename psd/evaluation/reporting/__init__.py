"""Pictures and pages of true errors. Private."""
