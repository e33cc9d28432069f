/** A relay to a server that can lose connections without an error, as a firewall does that forgets them. */

/** An open relay. */
export interface Relay extends Disposable {
  /** Address of the server through the relay. */
  url: string;
  /** Connects new connections to another server, as after a failover. */
  moveTo(server: string): void;
  /** Loses all open connections: nothing arrives any more, at either end. New connections work. */
  lose(): void;
}

/** Opens a relay. @param options `keeps`: connections in which this text was sent are never lost */
export function openRelay(server: string, { keeps }: { keeps?: string } = {}): Relay {
  const address = new URL(server);
  let target = new URL(server);
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections: { isLost: boolean; isKept: boolean }[] = [];
  void (async () => {
    for await (const client of listener) {
      const connection = { isLost: false, isKept: false };
      connections.push(connection);
      const upstream = await Deno.connect({ hostname: target.hostname, port: Number(target.port) });
      for (const [from, to] of [[client, upstream], [upstream, client]] as const) {
        const relayed = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
          transform(bytes, controller) {
            if (keeps !== undefined) connection.isKept ||= new TextDecoder().decode(bytes).includes(keeps);
            if (!connection.isLost) controller.enqueue(bytes);
          },
        });
        from.readable.pipeThrough(relayed).pipeTo(to.writable).catch(() => {});
      }
    }
  })();
  address.port = String(listener.addr.port);
  return {
    url: address.href,
    moveTo: (server) => void (target = new URL(server)),
    lose() {
      for (const connection of connections) connection.isLost = !connection.isKept;
    },
    [Symbol.dispose]: () => listener.close(),
  };
}
