import { modelsPage } from "../../../lib/console/models.tsx";
import { testFromForm } from "../../../lib/console/target_test.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return modelsPage(request, context);
}

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return testFromForm(request, context);
}
