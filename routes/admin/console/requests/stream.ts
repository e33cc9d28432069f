import type { RouteContext } from "../../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { streamForSession } = await import("../../../../lib/console/request_list.tsx");
  return streamForSession(request, context);
}
