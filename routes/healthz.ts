import type { RouteContext } from "../lib/http/router.ts";
import { alive } from "../lib/pipeline/health.ts";

export function GET(_request: Request, { gateway }: RouteContext): Promise<Response> {
  return alive(gateway);
}
