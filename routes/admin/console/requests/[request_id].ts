import type { RouteContext } from "../../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { requestPage } = await import("../../../../lib/console/request_page.tsx");
  return requestPage(request, context);
}
