import { overview } from "../../lib/console/overview.tsx";
import type { RouteContext } from "../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return overview(request, context);
}
