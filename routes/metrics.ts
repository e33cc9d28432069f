import type { RouteContext } from "../lib/http/router.ts";
import { metrics } from "../lib/pipeline/metrics.ts";

export function GET(_request: Request, { gateway }: RouteContext): Promise<Response> {
  return metrics(gateway);
}
