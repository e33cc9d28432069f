import type { RouteContext } from "../lib/server/router.ts";
import { answerLiveness } from "../lib/status/health.ts";

export function GET(_request: Request, { gateway }: RouteContext): Promise<Response> {
  return answerLiveness(gateway);
}
