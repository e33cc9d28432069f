/** The embedded language models as one upstream. The target's `model` selects one. */
import type { Upstream } from "../upstream.ts";
import { createEcho } from "./echo.ts";
import { createFault } from "./fault.ts";

/** Creates the upstream. The configuration allows only `fault` and `echo`. */
export function createEmbedded(): Upstream {
  const echo = createEcho();
  const fault = createFault();
  return { ...echo, generate: (call) => (call.target.model === "fault" ? fault : echo).generate(call) };
}
