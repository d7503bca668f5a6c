"""What isotrace costs beside a baseline that does the same with nothing kept or nothing clever."""
