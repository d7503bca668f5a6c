"""Series on the Hugging Face hub: labels resolved to commits once, files fetched at those commits."""
