/** The o200k_base tokenizer: exact counts in time linear in the text. */
export { COUNTED_AT_ONCE, loadTokenCounter, type TokenCounter } from "./counter.ts";
export { lastCut } from "./pieces.ts";
export { type TokenPiece, tokenPieces } from "./token_pieces.ts";
