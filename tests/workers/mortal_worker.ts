/** A worker that ends, with an error or without a word, when a client asks it to. */
import type { Route } from "../../lib/server/router.ts";
import { offerIsolate } from "../../lib/workers/isolate.ts";
import { openWire, type Port } from "../../lib/workers/wire.ts";
import { routes } from "../../routes/manifest.ts";

/** What ends this worker although it logs what nobody catches. */
class Mortal extends Error {}

// It comes before the listener that keeps a worker alive.
globalThis.addEventListener("error", (event) => {
  if (event.error instanceof Mortal) event.stopImmediatePropagation();
});

function obey(order: string | null): void {
  if (order === "end") {
    setTimeout(() => {
      throw new Mortal("told to");
    }, 0);
  }
  if (order === "close") setTimeout(() => (globalThis as unknown as { close(): void }).close(), 0);
}

const mortal = routes.map((route): Route => {
  if (route.path !== "/anthropic/api/hello") return route;
  return {
    ...route,
    handlers: {
      ...route.handlers,
      GET(request) {
        obey(request.headers.get("x-order"));
        return new Response("{}");
      },
    },
  };
});

offerIsolate(openWire(globalThis as unknown as Port), mortal);
