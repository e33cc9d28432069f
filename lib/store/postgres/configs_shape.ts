/** Tables of the configs. */
export const CONFIGS_SHAPE = ``;
