import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { requestsCsv } = await import("../../../lib/console/request_list.tsx");
  return requestsCsv(request, context);
}
