/** The list of policies over tenants, as people see it; in the order of their making. */
const NAMES = [
  'pods',
  'claims',
  'data',
  'services',
  'endpoints',
  'ingresses',
  'leases',
  'lives',
  'ownership',
  'metadata',
].map((of) => `tributary-tenant-${of}`);

/** `KIND SCOPE+NAME` of each and of what puts it in force. */
export const tenantPolicyLines = (scope: '' | '/'): string[] =>
  NAMES.flatMap((name) => [
    `ValidatingAdmissionPolicy ${scope}${name}`,
    `ValidatingAdmissionPolicyBinding ${scope}${name}`,
  ]);
