"""From numbers to claims: metrics over verdicts. Measures nothing."""
