/** The embedded language models as one upstream: the target's `model` tells which. */
import type { Upstream } from "../upstream.ts";
import { createEcho } from "./echo.ts";
import { createFault } from "./fault.ts";

/** Starts them. The configuration was checked: what is not `fault` is `echo`. */
export function createEmbedded(): Upstream {
  const echo = createEcho();
  const fault = createFault();
  return { ...echo, generate: (call) => (call.target.model === "fault" ? fault : echo).generate(call) };
}
