export { modelsPage as GET } from "../../../lib/console/models.tsx";
export { testFromForm as POST } from "../../../lib/console/target_test.tsx";
