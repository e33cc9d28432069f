import { listVendor } from "../../../lib/catalog/serve.ts";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return listVendor(request, context, "compatible");
}
