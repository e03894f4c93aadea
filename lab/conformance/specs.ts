/** Specs of Kubernetes' end-to-end suite as its reports name them, and how they ended. Pure. */

/** A report of ginkgo, `--json-report`: what is read of it. */
export interface GinkgoReport {
  readonly SpecReports?: readonly GinkgoSpec[] | null;
}

interface GinkgoSpec {
  readonly ContainerHierarchyTexts?: readonly string[] | null;
  readonly ContainerHierarchyLabels?: readonly (readonly string[])[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly LeafNodeLabels?: readonly string[] | null;
  readonly State: string;
  readonly Failure?: { readonly Message?: string };
}

export interface Spec {
  /** Its containers and its own text, as ginkgo matches them. */
  readonly name: string;
  readonly labels: readonly string[];
  /** `skipped`: not chosen, or the spec itself found that it does not fit this cluster. */
  readonly state: 'passed' | 'failed' | 'skipped';
  /** What failed first. */
  readonly message: string;
}

/** All specs of all suites of a report. Set-up and tear-down of the suite are no specs. */
export function specsOf(reports: readonly GinkgoReport[]): Spec[] {
  return reports
    .flatMap(({ SpecReports }) => SpecReports ?? [])
    .filter(({ LeafNodeType }) => LeafNodeType === 'It')
    .map((spec) => ({
      name: [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].join(' '),
      labels: [...(spec.ContainerHierarchyLabels ?? []).flat(), ...(spec.LeafNodeLabels ?? [])],
      state: stateOf(spec.State),
      message: spec.Failure?.Message ?? '',
    }));
}

/** Why a suite failed before any of its specs could run, if it did. */
export function suiteFailure(reports: readonly GinkgoReport[]): string | undefined {
  return reports
    .flatMap(({ SpecReports }) => SpecReports ?? [])
    .find(({ LeafNodeType, State }) => LeafNodeType !== 'It' && stateOf(State) === 'failed')?.Failure
    ?.Message;
}

/** Whatever is neither passed nor left out has failed: panicked, timed out, interrupted. */
function stateOf(state: string): Spec['state'] {
  if (state === 'passed') return 'passed';
  return state === 'skipped' || state === 'pending' ? 'skipped' : 'failed';
}

/** What ginkgo's --skip and --focus take for this name and no other. */
export const exactly = (name: string): string =>
  `${name.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)}$`;
