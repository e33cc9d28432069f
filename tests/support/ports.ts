/** Reserves ports for servers that restart, or that need a port number in advance. */

/**
 * The range is below the ports that systems assign to clients and to servers without a fixed port, so no port is taken
 * by chance.
 */
const LOWEST = 10_000;
const HIGHEST = 32_767;
const MARK_OFFSET = 30_000;

/** A TCP port that no other test gets until it is released. */
export interface ReservedPort extends Disposable {
  readonly port: number;
}

/** Reserves a free port. A server may take it at any time, and again after it has ended. */
export function reservePort(): ReservedPort {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST + 1));
    try {
      // A UDP port is its mark, which also ends with this process. That of the same number is left to HTTP/3.
      const mark = Deno.listenDatagram({ hostname: "127.0.0.1", port: port + MARK_OFFSET, transport: "udp" });
      try {
        Deno.listen({ hostname: "0.0.0.0", port }).close();
      } catch (error) {
        mark.close();
        throw error;
      }
      return { port, [Symbol.dispose]: () => mark.close() };
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}
