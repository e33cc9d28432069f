import type { RouteContext } from "../../lib/server/router.ts";
import { rerankDocuments } from "../../lib/retrieval/serve.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return rerankDocuments(request, context);
}
