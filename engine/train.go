package engine

import "loaderx/engine/internal/zstd"

// TrainDict trains a dictionary on samples that lie one after another, of the
// given sizes, and returns how many bytes of dict it fills.
func TrainDict(samples []byte, sizes []int64, dict []byte) (int, error) {
	lengths := make([]int, len(sizes))
	for i, n := range sizes {
		lengths[i] = int(n)
	}
	d, err := zstd.Train(samples, lengths, len(dict))
	if err != nil {
		return 0, errorf(StatusArgument, "", "training a dictionary: %v", err)
	}
	return copy(dict, d), nil
}
