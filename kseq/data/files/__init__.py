"""What all kinds of data are read with: files, tables, names, batches."""
