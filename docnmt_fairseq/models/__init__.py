"""fairseq models; fairseq imports every file of this folder."""
