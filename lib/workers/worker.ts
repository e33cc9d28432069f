/** The module of a worker. It is started by its owner, over the one port that both have. */
import { routes } from "../../routes/manifest.ts";
import { offerIsolate } from "./isolate.ts";
import { openWire, type Port } from "./wire.ts";

// The types of a window know nothing of a worker's global scope.
offerIsolate(openWire(globalThis as unknown as Port), routes);
