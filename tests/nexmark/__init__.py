"""The proof on Nexmark: people, auctions and bids, and the questions that are asked of them."""
