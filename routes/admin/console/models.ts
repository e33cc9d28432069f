import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { modelsPage } = await import("../../../lib/console/models.tsx");
  return modelsPage(request, context);
}

export async function POST(request: Request, context: RouteContext): Promise<Response> {
  const { testFromForm } = await import("../../../lib/console/target_test.tsx");
  return testFromForm(request, context);
}
