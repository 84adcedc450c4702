"""The curator, which holds the tally and answers questions with noise. Private."""
