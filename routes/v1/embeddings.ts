import type { RouteContext } from "../../lib/server/router.ts";
import { createEmbeddings } from "../../lib/retrieval/serve.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return createEmbeddings(request, context);
}
