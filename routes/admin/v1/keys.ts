import { addKey, listKeys } from "../../../lib/admin/keys.ts";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return listKeys(request, context);
}

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return addKey(request, context);
}
