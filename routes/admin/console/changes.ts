import { changesPage } from "../../../lib/console/changes.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return changesPage(request, context);
}
