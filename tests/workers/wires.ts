/** Two ends of a wire within one isolate. */
import { openWire, type Port, type Wire } from "../../lib/workers/wire.ts";

/** Both ends; they are to be closed. */
export interface Wires extends Disposable {
  one: Wire;
  other: Wire;
  /** What went over it so far. */
  messages: unknown[];
}

/** Opens a wire over a real channel. */
export function openWires(): Wires {
  const { port1, port2 } = new MessageChannel();
  const messages: unknown[] = [];
  const watched: Port = {
    postMessage(letters) {
      port1.postMessage(letters);
      messages.push(...letters as unknown[]);
    },
    get onmessage() {
      return port1.onmessage as Port["onmessage"];
    },
    set onmessage(listener) {
      port1.onmessage = listener;
    },
  };
  return {
    one: openWire(watched),
    other: openWire(port2 as unknown as Port),
    messages,
    [Symbol.dispose]() {
      port1.close();
      port2.close();
    },
  };
}
