/** Tables of the answers. */
export const ANSWERS_SHAPE = ``;
