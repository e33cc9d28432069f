/** Tables of the keys. */
export const KEYS_SHAPE = ``;
