/** A port at which connections are refused: it is never given to a server that takes any free one. */
export const CLOSED_PORT = 2;
