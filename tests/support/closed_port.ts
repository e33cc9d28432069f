/** A port at which connections are refused. The system never assigns it to a server that asks for any free port. */
export const CLOSED_PORT = 2;
