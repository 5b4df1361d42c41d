"""Claims about denoising diffusion."""
