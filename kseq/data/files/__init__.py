"""What all kinds of data share: files, tables, names, batches."""
