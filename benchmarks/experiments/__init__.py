"""What models learn: trainings on the same budget, scored."""
